import { Api } from "../../../machines/simulated/api";
import { httpsServer } from "../../support/simulated/fixture";

test("each request is a connection of its own, and only the first costs the server a signature", async () => {
  const server = await httpsServer();

  try {
    const api = new Api(server, {});
    for (let request = 0; request < 3; request += 1) await api.get("/readyz");
  } finally {
    server.close();
  }

  expect(server.isResumed).toEqual([false, true, true]);
});
