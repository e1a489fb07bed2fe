import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";

import { ScriptResult } from "../../../machines/machines";
import {
  badRequest,
  missingParameter,
  OperationFailed,
  operationNotAllowed,
  propertyChangeNotAllowed,
  refuse,
} from "../../azure-error";
import { ArmId, Body, keyOf, parseId, Resource, View } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { checkNotDeleting, powerOf } from "./power";
import { machineOf } from "./virtual-machine";
import { MachineBody } from "./virtual-machine-validation";

type ExtensionBody = {
  location: string;
  publisher?: string;
  type?: string;
  typeHandlerVersion?: string;
  autoUpgradeMinorVersion?: boolean;
  settings?: Body;
  protectedSettings?: Body;
  forceUpdateTag?: string;
  suppressFailures?: boolean;
  provisioningState?: string;
};

/** The agent reports the last bytes of stdout and of stderr. */
const maxOutputBytes = 4096;

const maxScriptBytes = 256 * 1024;

export const virtualMachineExtension: ResourceType<ExtensionBody> = {
  token: "azure-native:compute:VirtualMachineExtension",
  type: "Microsoft.Compute/virtualMachines/extensions",
  readOnly: ["instanceView"],

  accept({ id, body, old }, view) {
    for (const property of ["publisher", "type", "typeHandlerVersion"] as const) {
      if (!body[property]) throw missingParameter(property);
      if (property !== "typeHandlerVersion" && old && old.body[property] !== body[property]) {
        throw propertyChangeNotAllowed(property);
      }
    }
    checkRuns(id, view);
    const handler = (body: Body) => `${String(body["publisher"])}.${String(body["type"])}`;
    const duplicate = view
      .children(id.parent, virtualMachineExtension.type)
      .find((other) => keyOf(other.id) !== id.key && handler(other.body) === handler(body));
    if (duplicate) {
      throw badRequest(
        `Multiple VMExtensions per handler not supported for OS type 'Linux'. VMExtension '${id.name}' with handler '${handler(body)}' ` +
          "already added or specified in input.",
      );
    }
    if (isScript(body)) scriptOf(body, id);
    const { protectedSettings, ...visible } = body;
    return {
      body: { autoUpgradeMinorVersion: false, settings: {}, ...visible },
      // A digest recognises an equal PUT without storing secrets.
      hidden: {
        ...old?.hidden,
        configuration: digest([
          body.settings ?? {},
          protectedSettings ?? {},
          body.forceUpdateTag ?? "",
        ]),
      },
    };
  },

  mayDelete: ({ id }, view) => checkRuns(parseId(id)!, view),

  /**
   * Runs once for each configuration. An equal PUT returns the previous result, also a failure.
   */
  async run({ resource, old, ledger, machines, script, sent }) {
    const isUnchanged =
      old !== undefined && old.hidden["configuration"] === resource.hidden["configuration"];
    if (isUnchanged) {
      if (old.failure) {
        const { status, code, message } = old.failure;
        throw new OperationFailed(status, code, message);
      }
      return;
    }
    if (!isScript(resource.body)) return;
    const id = parseId(resource.id)!;
    const machine = ledger.find(id.parent) as Resource<MachineBody>;
    const text = scriptOf(sent, id);
    const result = await script(resource.id, () =>
      machines.runScript(machineOf(machine, ledger), text),
    );
    if (result.exitCode !== 0 && !resource.body.suppressFailures) throw failure(result, resource);
    resource.hidden["message"] = `Enable succeeded: ${outputOf(result)}`;
  },

  interrupted(resource) {
    resource.body.provisioningState = "Failed";
    resource.failure = failure(
      { exitCode: -1, stdout: "", stderr: "the local Azure was stopped while the script ran" },
      resource,
    );
  },
};

const isScript = ({ publisher, type }: ExtensionBody): boolean =>
  publisher === "Microsoft.Azure.Extensions" && type === "CustomScript";

/** The agent that would do it is in the machine. */
function checkRuns({ parent }: ArmId, view: View): void {
  const machine = view.find(parent);
  if (machine === undefined) return;
  const { osProfile } = machine.body as MachineBody;
  // hashicorp/terraform #24626 has the refusal.
  if (osProfile?.allowExtensionOperations === false) {
    throw operationNotAllowed(
      "This operation cannot be performed when extension operations are disallowed. To allow, please ensure VM Agent is installed " +
        "on the VM and the osProfile.allowExtensionOperations property is true.",
    );
  }
  checkNotDeleting("update extension", machine);
  if (powerOf(machine) === "running") return;
  throw operationNotAllowed("Cannot modify extensions in the VM when the VM is not running.");
}

const digest = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** The script that the agent runs. */
function scriptOf({ settings = {}, protectedSettings = {} }: ExtensionBody, id: ArmId): string {
  const setting = (property: string): string | undefined => {
    const [open, secret] = [
      settings[property] ?? undefined,
      protectedSettings[property] ?? undefined,
    ];
    if (open !== undefined && secret !== undefined) {
      throw refuse(
        "VMExtensionHandlerSettingsInvalid",
        `'${property}' of ${id.id} was specified both in public and protected settings; remove one of them.`,
      );
    }
    const value = open ?? secret;
    if (value === undefined || typeof value === "string") return value;
    throw refuse("VMExtensionHandlerSettingsInvalid", `'${property}' of ${id.id} is not a string.`);
  };
  const command = setting("commandToExecute");
  const encoded = setting("script");
  if ((command === undefined) === (encoded === undefined)) {
    throw refuse(
      "VMExtensionHandlerSettingsInvalid",
      `${id.id} needs exactly one of 'commandToExecute' and 'script'.`,
    );
  }
  if (command !== undefined) return command;
  if (encoded!.length > maxScriptBytes) {
    throw refuse(
      "VMExtensionHandlerSettingsInvalid",
      `'script' of ${id.id} has ${encoded!.length} bytes; the maximum is ${maxScriptBytes}.`,
    );
  }
  const bytes = Buffer.from(encoded!, "base64");
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  try {
    return (isGzip ? gunzipSync(bytes) : bytes).toString("utf8");
  } catch (error) {
    throw refuse(
      "VMExtensionHandlerSettingsInvalid",
      `'script' of ${id.id} begins as gzip does and is none: ${(error as Error).message}.`,
    );
  }
}

function outputOf({ stdout, stderr }: ScriptResult): string {
  const tail = (stream: string) => Buffer.from(stream).subarray(-maxOutputBytes).toString("utf8");
  return `\n[stdout]\n${tail(stdout)}\n[stderr]\n${tail(stderr)}`;
}

function failure(result: ScriptResult, { id, body }: Resource<ExtensionBody>): OperationFailed {
  return new OperationFailed(
    200,
    "VMExtensionProvisioningError",
    `VM has reported a failure when processing extension '${id.split("/").at(-1)}' (publisher '${body.publisher}' and type '${body.type}'). ` +
      `Error message: 'Enable failed: failed to execute command: command terminated with exit status=${result.exitCode}${outputOf(result)}'. ` +
      "More information on troubleshooting is available at https://aka.ms/VMExtensionCSELinuxTroubleshoot.",
  );
}
