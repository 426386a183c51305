/** The entry point: the rest is loaded with its compilation, once this Node is known to be new enough. */
import '../sys/node-version.ts';
import { loadBundle } from '../sys/bundle.ts';

loadBundle('main');
