/** The worker thread's entry point. */
import { loadBundle } from '../sys/bundle.ts';

loadBundle('fuse-worker');
