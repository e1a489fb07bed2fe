/** What an image has: versions of packages and programs, and digests of images, by name. */
export interface Contents {
  readonly settings: Readonly<Record<string, string>>;
  readonly packages: Readonly<Record<string, string>>;
  readonly programs: Readonly<Record<string, string>>;
  readonly images: Readonly<Record<string, string>>;
}

/** Reads the lines of first-boot.sh's `image_contents`. */
export function contentsOf(text: string): Contents {
  const lines = text.split("\n").map((line) => line.split(" "));
  const of = (kind: string) =>
    Object.fromEntries(
      lines.filter(([first]) => first === kind).map(([, name = "", value = ""]) => [name, value]),
    );
  return {
    settings: of("setting"),
    packages: of("package"),
    programs: of("program"),
    images: of("image"),
  };
}
