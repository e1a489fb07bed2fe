import { join } from "node:path";

/** The root of this repository. */
export const checkout = join(__dirname, "../..");

/** What Node is given before one of this repository's TypeScript files. */
export const loadTypeScript = ["--require", join(checkout, "typescript.cjs")] as const;
