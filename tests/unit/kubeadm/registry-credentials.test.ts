import { registryCredentialFiles } from "../../../components/kubeadm/registry-credentials";

const login = { username: "robot", password: "hush" };

it("brings a kubelet nothing without credentials", () => {
  expect(registryCredentialFiles({ registryCredentials: {} })).toEqual([]);
});

it.each([
  ["ghcr.io", "ghcr.io"],
  ["registry.example:5000/team", "registry.example:5000/team"],
  // The only name by which a kubelet looks for it.
  ["docker.io", "index.docker.io"],
  ["docker.io/team", "index.docker.io/team"],
])("logs in to %s where a kubelet looks, for root alone", (host, key) => {
  const [file] = registryCredentialFiles({ registryCredentials: { [host]: login } });

  expect(file).toMatchObject({ path: "/var/lib/kubelet/config.json", mode: "0600" });
  expect(JSON.parse(file!.content)).toEqual({ auths: { [key]: login } });
});
