import { readFileSync } from "node:fs";
import { join } from "node:path";

import * as pulumi from "@pulumi/pulumi";

import { machinesOf } from "../../components/settings/topology";
import { checkout } from "../../tools/shared/checkout";
import {
  access,
  complaints,
  declared,
  settingsWith,
  stackFile,
  stackValues,
} from "../support/stack";

beforeEach(() => {
  jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
});

const shapeOf = (stack: string) => {
  const settings = settingsWith({ ...stackValues(stack), ...access });
  const machines = machinesOf(settings);
  const count = (role: string) => machines.filter((machine) => machine.role === role).length;
  return {
    settings,
    controlPlanes: count("control-plane"),
    workers: count("worker"),
    zones: new Set(machines.map(({ zone }) => zone)).size,
  };
};

describe("Pulumi.yaml", () => {
  const text = readFileSync(join(checkout, "Pulumi.yaml"), "utf8");

  it.each(Object.entries(declared))(
    "gives %s a type in words, a default of it, an explanation and what a change replaces",
    (name, setting) => {
      const value = setting.default;
      const types: Record<string, string> = { number: "integer", object: "object" };
      const type = Array.isArray(value) ? "array" : (types[typeof value] ?? typeof value);
      expect(text).toMatch(new RegExp(`^  ${name}: # ${type}( of (string|object)s)?$`, "m"));
      // The engine would stop at the first value of another type, and say neither value nor
      // command.
      expect(setting).not.toHaveProperty("type");
      expect(setting.description).toMatch(/^[A-Z0-9a-z].{40,}[.;)] A change [^.]*\.$/s);
      // The engine would ask every stack for an encrypted value of its own.
      expect(setting.secret).toBeUndefined();
    },
  );

  it("leaves to be said only where the cluster is, who gets in and with which key", () => {
    const messages = complaints({});
    expect(messages.map((line) => line.split(/[ [.]/)[0]).sort()).toEqual([
      "apiAccessCidrs",
      "location",
      "sshPublicKey",
    ]);
  });
});

describe.each(["dev", "prod", "local", "machines"])("the %s stack", (stack) => {
  it("is valid, and gives no warning", () => {
    settingsWith({ ...access, ...stackValues(stack) });
    expect(pulumi.log.warn).not.toHaveBeenCalled();
  });

  it("is committed without an encryption salt or anything else of its owner's", () => {
    expect(Object.keys(stackFile(stack))).toEqual(["config"]);
  });
});

it.each(["dev", "prod"])("the %s stack has no key, and admits no addresses", (stack) => {
  const messages = complaints(stackValues(stack));
  expect(messages.map((line) => line.split(/[ [.]/)[0]).sort()).toEqual([
    "apiAccessCidrs",
    "sshPublicKey",
  ]);
});

it("dev is the recipe's cluster, all of it cheap", () => {
  expect(shapeOf("dev")).toMatchObject({
    controlPlanes: 1,
    workers: 2,
    zones: 3,
    settings: {
      location: "southeastasia",
      egress: "single",
      osDiskSku: "StandardSSD_LRS",
      // Not Standard_B2s, which Azure retires in November 2028 and new subscriptions often lack.
      controlPlaneSize: "Standard_B2as_v2",
      workerPools: [{ size: "Standard_B2as_v2" }],
      protect: false,
    },
  });
});

it("prod survives a zone, and is protected", () => {
  expect(shapeOf("prod")).toMatchObject({
    controlPlanes: 3,
    workers: 3,
    zones: 3,
    settings: { egress: "zonal", osDiskSku: "Premium_LRS", protect: true },
  });
});

it("local has the recipe's shape, and needs nothing of its user", () => {
  expect(complaints(stackValues("local"))).toEqual([]);
  expect(shapeOf("local")).toMatchObject({ controlPlanes: 1, workers: 2, zones: 3 });
});
