import type { Command } from 'commander';

/** A command that could not do what was asked; the message is for the operator, the exit code is 1. */
export class Failure extends Error {}

/** Prints what was done: as a sentence, or as JSON when --json was given. */
export function report(command: Command, sentence: string, result: Record<string, unknown>): void {
  const { json } = command.optsWithGlobals<{ json?: boolean }>();
  process.stdout.write(`${json ? JSON.stringify(result) : sentence}\n`);
}
