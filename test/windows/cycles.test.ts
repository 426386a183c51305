// Many windows, one after the other and in one another, while processes write: nothing piles up.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { protectedDifferences } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { onMount } from './live.ts';

/** 1,000 with FORGET_WINDOWS_CYCLES=1000. */
const CYCLES = Number(process.env.FORGET_WINDOWS_CYCLES ?? 250);

const LOAD = `
stop = False
count = 0
def work(name):
    global count
    n = 0
    while not stop:
        n += 1
        try:
            with open(f"memory/{name}.{n % 20}", "a") as out: out.write("x" * 500)
            os.rename(f"memory/{name}.{n % 20}", f"memory/{name}.moved.{n % 5}")
            os.makedirs(f"memory/{name}.d/{n % 3}", exist_ok=True)
            with open(f"memory/{name}.d/{n % 3}/f", "w") as out: out.write("y")
            if n % 7 == 0: os.unlink(f"memory/{name}.moved.{n % 5}")
            with open("memory/old.md", "a") as out: out.write("z")
            with open(f"src/{name}.txt", "w") as out: out.write(str(n))
        except OSError: pass
        count += 1
threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
for thread in threads: thread.start()`;

onMount('windows that open and close under load leave no node, descriptor or byte behind', async (live) => {
  const agent = await live.agent();
  // A window is open all the while, so that what is written between two others is not real.
  await live.open('outer');
  await agent.does(LOAD);
  const counts = async () => {
    const { memory, upper, pid } = await live.status();
    return { nodes: memory.nodes, descriptors: readdirSync(`/proc/${pid}/fd`).length, used: upper.used };
  };
  let early: Awaited<ReturnType<typeof counts>> | undefined;
  const began = Date.now();
  for (let cycle = 1; cycle <= CYCLES; cycle++) {
    await live.open('a');
    if (cycle % 2 === 0) await live.open('b');
    await live.close('a');
    if (cycle % 2 === 0) await live.close('b');
    if (cycle === 50) early = await counts();
  }
  const perCycle = (Date.now() - began) / CYCLES;
  const late = await counts();
  assert.ok(
    late.nodes < early!.nodes * 2 + 200,
    `nodes: ${early!.nodes} after 50 cycles, ${late.nodes} at the end`,
  );
  assert.ok(
    late.descriptors < early!.descriptors * 2 + 100,
    `descriptors: ${early!.descriptors}, ${late.descriptors}`,
  );
  assert.ok(late.used < early!.used * 2 + (1 << 20), `bytes: ${early!.used}, ${late.used}`);
  await agent.does('stop = True\nfor thread in threads: thread.join()');
  assert.ok(Number(await agent.does('print(count)')) > CYCLES / 10, 'the load did not run');
  await live.close('outer');
  assert.deepEqual(protectedDifferences(live.workspace), []);
  assert.equal((await live.status()).upper.used, 0);
  // What nobody has open any more is forgotten.
  await agent.end();
  const inside = snapshot(live.view);
  assert.deepEqual(
    [...inside.keys()].filter((path) => /^memory\/(?:one|two)/.test(path)),
    [],
  );
  assert.ok(perCycle < 200, `${perCycle.toFixed(1)} ms a cycle`);
});

onMount('windows that open and close while nothing happens leave the counts as they were', async (live) => {
  const agent = await live.agent();
  const cycle = async () => {
    await live.open();
    await agent.does(
      'os.makedirs("memory/a/b"); open("memory/a/b/c", "w").write("c"); os.unlink("memory/old.md")',
    );
    await live.open();
    await agent.does('open("memory/a/b/c", "a").write("d"); os.rename("memory/a", "memory/e")');
    await live.close();
    await live.close();
  };
  const counts = async () => {
    await delay(150); // idle descriptors are closed
    const { memory, upper, pid } = await live.status();
    return [upper.used, memory.nodes, readdirSync(`/proc/${pid}/fd`).length];
  };
  for (let n = 0; n < 10; n++) await cycle();
  const before = await counts();
  for (let n = 0; n < CYCLES / 5; n++) await cycle();
  const after = await counts();
  // The kernel forgets in its own time what it has let go of.
  assert.ok(after[1]! <= before[1]! + 12 && after[2]! <= before[2]! + 12, `${before} -> ${after}`);
  assert.equal(after[0], 0);
  const { pid } = await live.status();
  assert.ok(readFileSync(`/proc/${pid}/status`, 'utf8'));
});
