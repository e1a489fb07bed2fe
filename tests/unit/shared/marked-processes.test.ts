import { markedByPs } from "../../../shared/marked-processes";
import { identityOf } from "../../../shared/pids";

const run = `/nowhere/${process.pid} ü x/up-1-1`;

test("where there is no /proc, ps shows what belongs to a run, whatever its folder is called", () => {
  const text = [
    `  ${process.pid} /cache/bin/pulumi up --stack dev HOME=/home/a b ZONED_RUN=${run} PATH=/bin:/usr/bin`,
    `  2 /bin/node index.js ZONED_RUN=/other/destroy-7-8`,
    `  3 grep ZONED_RUN= .`,
  ].join("\n");

  const found = markedByPs("ZONED_RUN", text);

  expect(found.map(({ mark }) => mark)).toEqual([run, "/other/destroy-7-8"]);
  expect(found[0]!.identity).toEqual(identityOf(process.pid));
});
