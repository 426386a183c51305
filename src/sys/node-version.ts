/**
 * Imported first by the entry point, for its effect: refuses a Node that lacks what the rest is written for. The
 * shell entry cannot ask, since asking costs a second start of Node.
 */
import { writeSync } from 'node:fs';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  writeSync(
    2,
    `forget: needs Node.js 20.19 or later, but ${process.execPath} is ${process.versions.node}: ` +
      'install a newer one, or put it first in PATH\n',
  );
  process.exit(125);
}
