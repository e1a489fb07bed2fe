import { addressOf } from "../mirror";

it.each([
  ["10.0.0.4:8080", { address: "10.0.0.4", port: 8080 }],
  ["mirror.example:80", { address: "mirror.example", port: 80 }],
  ["[::1]:80", { address: "::1", port: 80 }],
])("serves at %s", (text, expected) => {
  expect(addressOf(text)).toEqual(expected);
});

it.each(["8080", ":8080", "10.0.0.4", "10.0.0.4:70000", "10.0.0.4:"])(
  "says how an address is written when it is %s",
  (text) => {
    expect(() => addressOf(text)).toThrow(`--serve is ${text}, expected ADDRESS:PORT`);
  },
);
