/** The id of a window: `PID-RANDOM`, since a pid alone may be another's too, where containers share a network. */

export function newId(): string {
  const random = Math.floor(Math.random() * 0x10000);
  return `${process.pid}-${random.toString(16).padStart(4, '0')}`;
}

export function isId(text: string): boolean {
  return /^\d+-[0-9a-f]{4}$/.test(text);
}

export function pidOf(id: string): number {
  return Number.parseInt(id, 10);
}
