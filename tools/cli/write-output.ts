import { resolve } from "node:path";

import { reasonOf, writeWhole } from "../shared/files";
import { UserError } from "../shared/user-error";

/**
 * Writes the file that a command is for, and returns its path.
 *
 * @throws UserError when it cannot be written
 */
export function writeOutput(name: string, text: string): string {
  const file = resolve(name);
  try {
    writeWhole(file, text);
  } catch (error) {
    throw new UserError(
      `${file} cannot be written: ${reasonOf(error)}; name another file (--output)`,
    );
  }
  return file;
}
