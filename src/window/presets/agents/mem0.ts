import type { Preset } from '../preset.ts';

const source = "mem0's source (memory/setup.py, configs/base.py)";
const date = '2026-11-30';

export const mem0: Preset = {
  name: 'mem0',
  title: 'mem0',
  programs: ['mem0'],
  places: [{ directory: '${MEM0_DIR:-~/.mem0}', rules: ['/*', '!/config.json'], source, date }],
  workspace: { rules: ['/memory.db'], source, date },
  real: ['config.json: settings', '/tmp/qdrant, where its vector store stands unless it is told otherwise'],
  notes: [
    'a library: name it with --agent mem0 beside the program that uses it',
    'a vector store elsewhere, or in a service, is not covered',
  ],
};
