/**
 * koffi's addon, straight from the package of this platform where it stands at the usual places: 1 ms, against 3 by way
 * of Node's package resolution, and 8 by way of koffi's own loader, which looks through the executable's ELF header first, and
 * adds nothing but warnings about old names.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type koffiModule from 'koffi';

type Koffi = typeof koffiModule;

/** In this package's own node_modules, and beside it, as npm installs a dependency of a dependency. */
const PLACES = ['../node_modules', '../..'];
/** What package.json asks for. */
const MAJOR = '3.';

function load(): Koffi {
  const { arch } = process;
  for (const place of PLACES) {
    try {
      const file = `@koromix/koffi-linux-${arch}/linux_${arch}/koffi.node`;
      const addon = { exports: {} as Koffi };
      process.dlopen(addon, join(import.meta.dirname, place, file));
      if (addon.exports.version.startsWith(MAJOR)) return addon.exports;
    } catch {
      // Not there, or for another C library: koffi's loader knows where else to look.
    }
  }
  const require = createRequire(import.meta.filename);
  return (require('koffi') as { default: Koffi }).default;
}

export const koffi = load();
