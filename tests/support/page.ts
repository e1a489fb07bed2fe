/** Line by line, what a page, or a part of one, has somebody type into a shell. */
export const typedIn = (page: string): string[] =>
  [...page.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block]) =>
    block!.split("\n").flatMap((line) => line.trim() || []),
  );
