import { judged, probe } from "../../../../machines/qemu/network/probes";
import * as ruleset from "../../../../machines/qemu/network/ruleset";
import { httpsServer } from "../../../support/simulated/fixture";

const up = { isUp: true, against: 0 };
const down = { isUp: false, against: 0 };

test("a machine turns when as many results in a row contradict its standing as the threshold says", () => {
  const once = judged(up, false, 2);
  expect(once.isUp).toBe(true);
  expect(judged(once, false, 2)).toEqual(down);
  expect(judged(judged(down, true, 2), true, 2)).toEqual(up);
});

test("one result that agrees makes the count begin anew", () => {
  const shaken = judged(judged(up, false, 2), true, 2);
  expect(judged(shaken, false, 2).isUp).toBe(true);
});

test("each HTTPS probe is a connection of its own, and only the first costs the machine a signature", async () => {
  // The platform's own address is there in the networks of machines alone.
  jest.replaceProperty(ruleset, "platformAddress", "127.0.0.1" as never);
  const { host, port, isResumed, close } = await httpsServer();
  const rule = { address: host, port, protocol: "Tcp", backendPort: port, backends: [host] };
  const asked = {
    ...{ ...rule, isFloating: false, isInternal: false },
    probe: { name: "api", protocol: "Https", port, requestPath: "/readyz" },
  };

  try {
    for (let turn = 0; turn < 3; turn += 1) expect(await probe(host, asked, 5_000)).toBe(true);
  } finally {
    close();
  }

  expect(isResumed).toEqual([false, true, true]);
});
