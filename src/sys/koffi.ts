/**
 * koffi's addon, straight from the package of this platform where it stands at the usual places: 1 ms, against 8 by way
 * of koffi's own loader, which looks through the executable's ELF header and Node's package resolution first, and adds
 * nothing but warnings about old names.
 */
import { createRequire } from 'node:module';
import type koffiModule from 'koffi';

type Koffi = typeof koffiModule;

const require = createRequire(import.meta.url);
/** In this package's own node_modules, and beside it, as npm installs a dependency of a dependency. */
const PLACES = ['../node_modules', '../..'];
/** What package.json asks for. */
const MAJOR = '3.';

function load(): Koffi {
  const { arch } = process;
  for (const place of PLACES) {
    try {
      const addon = require(`${place}/@koromix/koffi-linux-${arch}/linux_${arch}/koffi.node`) as Koffi;
      if (addon.version.startsWith(MAJOR)) return addon;
    } catch {
      // Not there, or for another C library: koffi's loader knows where else to look.
    }
  }
  return (require('koffi') as { default: Koffi }).default;
}

export const koffi = load();
