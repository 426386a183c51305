import { Failure } from './failure.ts';
export async function mountWindow(_s: unknown, _o: unknown): Promise<number> {
  throw new Failure('not yet');
}
export async function unmountWindow(_t: string, _o: unknown): Promise<void> {
  throw new Failure('not yet');
}
