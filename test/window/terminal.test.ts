/** A real interactive shell on a real pseudo-terminal runs forget; terminal_scenarios.py is the person at the keyboard. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { installDriver } from './install-driver.ts';

const scenarios = fileURLToPath(new URL('terminal_scenarios.py', import.meta.url));

/** `onlyWrapped`: there is no wrapper to send a signal to when the command runs bare. */
const told: { name: string; behaviour: string; onlyWrapped?: boolean }[] = [
  { name: 'interrupt-once', behaviour: 'one Ctrl-C reaches the command once' },
  { name: 'interrupt-ends-both', behaviour: 'Ctrl-C ends the command and the script that called forget' },
  { name: 'stop-and-continue', behaviour: 'Ctrl-Z, jobs, fg and bg act on command and forget as on one' },
  { name: 'resize', behaviour: 'a resize of the terminal reaches the command once, with the new size' },
  { name: 'raw-mode', behaviour: 'vim draws, stops, comes back and leaves the terminal as it was' },
  { name: 'settings-stay', behaviour: 'what stty sets inside stays set afterwards' },
  { name: 'inner-shell', behaviour: 'an interactive shell inside has its own job control, suspend included' },
  { name: 'background-reader', behaviour: 'a background command that reads the terminal stops until fg' },
  { name: 'hang-up', behaviour: 'the command ends when its terminal goes away' },
  {
    name: 'crashed-child',
    behaviour: 'the terminal comes back from a shell that was killed in the foreground',
    onlyWrapped: true,
  },
  {
    name: 'alone-and-group',
    behaviour: 'a signal to forget alone is passed on, one to the whole group is not doubled',
    onlyWrapped: true,
  },
];

describe('the terminal', () => {
  let driver: Awaited<ReturnType<typeof installDriver>>;
  let bare: string;
  before(async () => {
    driver = await installDriver();
    bare = mkdtempSync(`${tmpdir()}/forget-bare-`);
    writeFileSync(`${bare}/forget`, '#!/bin/sh\nshift 2; exec "$@"\n');
    chmodSync(`${bare}/forget`, 0o755);
  });
  after(() => {
    driver.remove();
    rmSync(bare, { recursive: true });
  });

  const play = (name: string, forget: string): void => {
    const run = spawnSync('/usr/bin/python3', [scenarios, name, forget], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    assert.equal(run.status, 0, `${run.stdout}${run.stderr}`);
  };
  for (const { name, behaviour, onlyWrapped } of told) {
    test(behaviour, { timeout: 130_000 }, () => {
      // The scenario must hold without forget too, or it asks for something that no program has.
      if (!onlyWrapped) play(name, `${bare}/forget`);
      play(name, driver.forget);
    });
  }
});
