/**
 * Protected text in objects that the window brought into git repositories. State: what was found, and the names that new
 * trees give to new blobs, so that a finding can be told by its file's name. An object's id is a hash of content, and
 * stays in here.
 */
import { posix } from 'node:path';
import type { Program } from '../../overlay/ledger.ts';
import { displayName } from '../../sys/bytes.ts';
import { type GitObject, looseObject, messageOf, packedObjects, treeEntries } from './git-objects.ts';
import { isBinary } from './protected-text.ts';
import type { Hit, ProtectedShingles, Resemblance } from './resemblance.ts';

interface Finding {
  /** Byte string, relative to the root. */
  repository: string;
  type: GitObject['type'];
  id: string | undefined;
  hits: readonly Hit[];
  program: Program | undefined;
}

export class GitSearch {
  private readonly shingles: ProtectedShingles;
  private readonly mostBytes: number;
  private readonly found: Finding[] = [];
  private readonly names = new Map<string, string>();
  readonly unsearched = new Map<string, number>();

  constructor(shingles: ProtectedShingles, mostBytes: number) {
    this.shingles = shingles;
    this.mostBytes = mostBytes;
  }

  /** `bytes` are those of a loose object, or of a pack where `id` is undefined; `time` as for ProtectedShingles.look. */
  look(
    { repository, id }: { repository: string; id: string | undefined },
    bytes: Buffer,
    time: number,
    program: Program | undefined,
  ): void {
    const look = (object: GitObject) => {
      if (object.type === 'tree') {
        if (id !== undefined)
          for (const entry of treeEntries(object.body, id.length / 2)) this.names.set(entry.id, entry.name);
        return;
      }
      const isMessage = object.type === 'commit' || object.type === 'tag';
      const text = isMessage ? messageOf(object.body) : object.body;
      if (object.type === 'blob' && isBinary(text)) return;
      const hits = this.shingles.look(text, time);
      if (hits) this.found.push({ repository, type: object.type, id, hits, program });
    };
    if (id === undefined) {
      for (const object of packedObjects(bytes, this.mostBytes)) look(object);
      return;
    }
    const object = looseObject(bytes, this.mostBytes);
    if (object) look(object);
    else this.unsearched.set('large git objects', (this.unsearched.get('large git objects') ?? 0) + 1);
  }

  /** After all texts of the window were looked at. */
  *findings(): Generator<{
    repository: string;
    what: string;
    like: Resemblance;
    program: Program | undefined;
  }> {
    for (const { repository, type, id, hits, program } of this.found) {
      const like = this.shingles.judge(hits);
      if (like) yield { repository: repository || '.', what: this.nameOf(type, id), like, program };
    }
  }

  private nameOf(type: GitObject['type'], id: string | undefined): string {
    const name = id === undefined ? undefined : this.names.get(id);
    if (name !== undefined) return `${displayName(posix.basename(name))}, in a new commit`;
    if (type === 'commit') return 'the message of a new commit';
    if (type === 'tag') return 'the message of a new tag';
    return id === undefined ? 'a file in a new pack' : 'a file that was added';
  }
}
