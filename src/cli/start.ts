/**
 * The entry point. For `exec` the FUSE worker is started before anything else is loaded: it takes as long to load as
 * all the rest, and there are two cores.
 */
import '../sys/node-version.ts';
import { loadBundle } from '../sys/bundle.ts';
import { startWorker } from '../window/worker.ts';

// The words before a subcommand can only be options of `forget` itself, and those end the program.
if (process.argv[2] === 'exec') startWorker();
loadBundle('main');
