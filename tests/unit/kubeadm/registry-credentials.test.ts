import { registryCredentialFiles } from "../../../components/kubeadm/registries";

const login = { username: "robot", password: "hush" };

it("brings a kubelet nothing without credentials", () => {
  expect(registryCredentialFiles({ registryCredentials: {} })).toEqual([]);
});

it.each([
  ["ghcr.io", "ghcr.io"],
  ["registry.example:5000/team", "registry.example:5000/team"],
  // A kubelet looks for docker.io/team/app by its own name, and then for the host by this one.
  ["docker.io", "index.docker.io"],
  ["docker.io/team", "docker.io/team"],
  ["index.docker.io", "index.docker.io"],
  ["index.docker.io/team", "docker.io/team"],
])("logs in to %s where a kubelet looks, for root alone", (host, key) => {
  const [file] = registryCredentialFiles({ registryCredentials: { [host]: login } });

  expect(file).toMatchObject({ path: "/var/lib/kubelet/config.json", mode: "0600" });
  expect(JSON.parse(file!.content)).toEqual({ auths: { [key]: login } });
});
