import { answer } from "../../../../machines/qemu/network/dns";

const known = (name: string) => (name === "api.example" ? "203.0.113.7" : undefined);

/** A query as resolvers send it: one question, recursion asked for. */
function query(name: string, type: number): Buffer {
  const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  return Buffer.from([0xbe, 0xef, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1]);
}

const code = (reply: Buffer | undefined) => reply && reply[3]! & 0x0f;
const answers = (reply: Buffer | undefined) => reply?.readUInt16BE(6);

test("a known name has its address, whatever its letters' case", () => {
  const reply = answer(query("API.example", 1), known);
  expect(reply?.readUInt16BE(0)).toBe(0xbeef);
  expect([code(reply), answers(reply)]).toEqual([0, 1]);
  expect([...reply!.subarray(-4)]).toEqual([203, 0, 113, 7]);
});

test("a known name has no address of the other kind, and exists all the same", () => {
  const reply = answer(query("api.example", 28), known);
  expect([code(reply), answers(reply)]).toEqual([0, 0]);
});

test("any other name does not exist", () => {
  expect(code(answer(query("elsewhere.example", 1), known))).toBe(3);
});

test("what is no query gets no answer", () => {
  const response = query("api.example", 1);
  response[2]! |= 0x80;
  expect(answer(response, known)).toBeUndefined();
  expect(answer(query("api.example", 1).subarray(0, 20), known)).toBeUndefined();
  expect(answer(Buffer.from("hello"), known)).toBeUndefined();
});
