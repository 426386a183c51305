import { execFileSync } from 'node:child_process';

export function zstd(from, to) {
  execFileSync('zstd', ['-q', '-f', from, '-o', to]);
}

export function unzstd(from, to) {
  execFileSync('zstd', ['-q', '-d', '-f', from, '-o', to]);
}
