import { Client, Refused } from "../../../../plugins/kubernetes/api/client";
import { Discovery, UnknownKind } from "../../../../plugins/kubernetes/api/discovery";

const clientWhere = (answer: () => object[] | undefined) => {
  const asked: string[] = [];
  const get = async (path: string) => {
    asked.push(path);
    const resources = answer();
    if (!resources) {
      throw new Refused(404, {});
    }
    return { resources };
  };
  return { asked, client: { get } as unknown as Client };
};

const things = { name: "things", kind: "Thing", namespaced: true };

it("asks once for all kinds of a version, also when many want to know at once", async () => {
  const { asked, client } = clientWhere(() => [things, { name: "others", kind: "Other" }]);
  const discovery = new Discovery(client);

  await Promise.all(["Thing", "Other", "Thing"].map((kind) => discovery.find("a.b/v1", kind)));

  expect(asked).toEqual(["/apis/a.b/v1"]);
});

it("asks again at once for a kind that was not there before", async () => {
  let known: object[] = [{ name: "others", kind: "Other" }];
  const { client } = clientWhere(() => known);
  const discovery = new Discovery(client);
  await discovery.find("a.b/v1", "Other");

  known = [things];

  expect(await discovery.find("a.b/v1", "Thing")).toEqual({ plural: "things", namespaced: true });
});

it("says which kind is missing, and what makes kinds", async () => {
  const discovery = new Discovery(clientWhere(() => undefined).client);

  const failure = discovery.find("a.b/v1", "Thing");

  await expect(failure).rejects.toBeInstanceOf(UnknownKind);
  await expect(failure).rejects.toThrow(/no kind Thing in a\.b\/v1; if a CustomResourceDefinition/);
});

it.each([
  { apiVersion: "v1", path: "/api/v1/namespaces/here/things/it" },
  { apiVersion: "a.b/v1", path: "/apis/a.b/v1/namespaces/here/things/it" },
])("finds objects of $apiVersion at $path", async ({ apiVersion, path }) => {
  const discovery = new Discovery(clientWhere(() => [things]).client);

  expect(await discovery.path(apiVersion, "Thing", "here", "it")).toBe(path);
});
