/**
 * What forget expects to go wrong: the message is one line for the person, says what to do, and carries names
 * already made readable (`displayName`). The command line turns it into exit code 125 without a stack.
 */
export class Failure extends Error {
  override readonly name = 'Failure';
}
