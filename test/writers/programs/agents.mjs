// The write sequences of real agents (../shared's agents.md names their sources), each on protected and on
// unprotected files; prints what it observes. Run as `node agents.mjs AGENT`.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import { unzstd, zstd } from './zstd.mjs';

async function see(label, action) {
  try {
    console.log(`${label}: ${JSON.stringify(await action())}`);
  } catch (error) {
    console.log(`${label}: ${error.code ?? error}`);
  }
}

const read = (at) => fs.readFileSync(at, 'utf8');
const names = (at) =>
  fs
    .readdirSync(path.dirname(at))
    .filter((name) => name.includes(path.basename(at)))
    .sort();

async function syncDirectory(at) {
  const directory = await fsp.open(path.dirname(at), 'r');
  await directory.sync();
  await directory.close();
}

/** Cline's atomic-file: exclusive temporary file, fsync, rename, fsync of the directory. */
async function cline(at) {
  const temporary = `${at}.${process.pid}.${randomUUID()}.tmp`;
  const file = await fsp.open(temporary, 'wx', 0o600);
  await file.writeFile(`{"task": "${path.basename(at)}"}\n`);
  await file.sync();
  await file.close();
  await fsp.rename(temporary, at);
  await syncDirectory(at);
  return [read(at), (fs.statSync(at).mode & 0o777).toString(8), names(at)];
}

/** Roo Code's safeWriteJson: a directory as lock, kept fresh; the old file aside, the new one in, the old one away. */
async function roo(at) {
  const lock = `${at}.lock`;
  fs.mkdirSync(lock);
  fs.utimesSync(lock, new Date(), new Date());
  let twice = 'taken';
  try {
    fs.mkdirSync(lock);
  } catch (error) {
    twice = error.code;
  }
  const stamp = `${Date.now()}_${Math.random().toString(36).slice(2)}`;
  const [directory, name] = [path.dirname(at), path.basename(at)];
  const fresh = path.join(directory, `.${name}.new_${stamp}.tmp`);
  const backup = path.join(directory, `.${name}.bak_${stamp}.tmp`);
  fs.writeFileSync(fresh, '{"safe": true}\n');
  if (fs.existsSync(at)) fs.renameSync(at, backup);
  fs.renameSync(fresh, at);
  if (fs.existsSync(backup)) fs.unlinkSync(backup);
  fs.rmdirSync(lock);
  return [twice, read(at), names(at)];
}

/** Codex: append to the rollout, reopen, compress to a sibling, drop the original, and bring it back to append. */
async function codex(at) {
  fs.appendFileSync(at, '{"item": 1}\n');
  const file = await fsp.open(at, 'a+', 0o600);
  const { ino } = await file.stat({ bigint: true });
  await file.appendFile('{"item": 2}\n');
  await file.chmod(0o600);
  const kept = (await fsp.stat(at, { bigint: true })).ino === ino;
  await file.close();
  zstd(at, `${at}.zst`);
  fs.unlinkSync(at);
  const compressed = names(at);
  unzstd(`${at}.zst`, `${at}.tmp`);
  fs.renameSync(`${at}.tmp`, at);
  fs.unlinkSync(`${at}.zst`);
  fs.appendFileSync(at, '{"item": 3}\n');
  const trimmed = await fsp.open(at, 'r+');
  await trimmed.truncate(12);
  await trimmed.close();
  return [kept, compressed, read(at), names(at)];
}

/** Gemini CLI: a record it cannot read is set aside, and a rewrite takes its place. */
async function gemini(at) {
  fs.appendFileSync(at, 'not json at all');
  fs.renameSync(at, `${at}.unreadable-${Date.now()}`);
  fs.writeFileSync(`${at}.tmp-${process.pid}`, '{"session": "rewritten"}\n');
  fs.renameSync(`${at}.tmp-${process.pid}`, at);
  fs.appendFileSync(at, '{"turn": 1}\n');
  for (const name of names(at))
    if (name.includes('.unreadable-')) fs.unlinkSync(path.join(path.dirname(at), name));
  return [read(at), names(at)];
}

/** OpenClaw: a session that ends is renamed with a date, and a new one begins under the old name. */
async function openclaw(at) {
  const stamp = '2026-01-02T03-04-05.678Z';
  fs.appendFileSync(at, '{"turn": "last"}\n');
  fs.renameSync(at, `${at}.deleted.${stamp}`);
  fs.writeFileSync(at, '{"turn": "first"}\n', { flag: 'wx' });
  fs.renameSync(at, `${at}.reset.${stamp}`);
  const both = names(at);
  fs.copyFileSync(`${at}.reset.${stamp}`, at);
  for (const name of both) fs.unlinkSync(path.join(path.dirname(at), name));
  return [both, read(at), names(at)];
}

/** Claude Code: buffered appends, a truncation in place after an error, and appends again through one descriptor. */
async function claude(at) {
  const file = await fsp.open(at, 'a');
  for (let turn = 0; turn < 50; turn++) await file.appendFile(`${JSON.stringify({ turn })}\n`);
  const { size } = await file.stat();
  await fsp.truncate(at, size - 5);
  await file.appendFile('"cut"}\n');
  await file.close();
  return [size, read(at).length, read(at).slice(-20)];
}

const agents = { cline, roo, codex, gemini, openclaw, claude };
process.umask(0o022);
fs.mkdirSync('state');
fs.writeFileSync('state/tasks.json', '{}\n');
for (const at of [
  'memory/old.md',
  'logs/a.jsonl',
  'DELIVERABLES.md',
  'MEMORY.md',
  'state/tasks.json',
  'README.md',
]) {
  await see(`${process.argv[2]} ${at}`, () => agents[process.argv[2]](at));
  await see('and again', () => agents[process.argv[2]](at));
}
await see('new memory', () => agents[process.argv[2]]('memory/new.json').catch((error) => error.code));
