/** Methods that every Node Buffer has and @types/node leaves out; they skip the encoding look-up. */
interface Buffer {
  latin1Write(text: string, offset: number): number;
  latin1Slice(start: number, end: number): string;
}
