import { neededTools } from "../../../mirror/needed-tools";
import { Sources } from "../../../mirror/sources";

class Only extends Sources {
  constructor(private readonly there: RegExp) {
    super(new AbortController().signal);
  }

  override answers(url: string): Promise<boolean> {
    return Promise.resolve(this.there.test(url));
  }
}

const names = async (there: RegExp) => (await neededTools(new Only(there))).map(({ name }) => name);

it("builds nothing that an official source gives", async () => {
  expect(await names(/./)).toEqual(["kubernetes"]);
  expect(await names(/pkgs\.k8s\.io|registry\.k8s\.io/)).toEqual(["kubernetes", "flannel"]);
});

it("builds each thing once, and the kubelet when most of it is in Go's cache", async () => {
  const needed = await names(/^nowhere$/);

  expect(new Set(needed).size).toBe(needed.length);
  expect(needed[0]).toBe("kubernetes");
  expect(needed.at(-1)).toBe("kubernetes-node");
  expect(needed).toEqual(expect.arrayContaining(["coredns", "etcd", "flannel", "cni-plugins"]));
});
