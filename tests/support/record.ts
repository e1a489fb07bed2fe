import * as pulumi from "@pulumi/pulumi";

import { checkout } from "../../tools/shared/checkout";

/** One resource that a program asked for. */
export interface Recorded {
  readonly type: string;
  readonly name: string;
  readonly inputs: Record<string, any>;
  readonly opts: pulumi.ResourceOptions;
  /** The resource itself, for claims about `dependsOn`, `deletedWith` and `parent`. */
  readonly resource: pulumi.Resource | undefined;
}

export interface RecorderOptions {
  /** What the cloud fills in by itself, by type, or by type and request. */
  readonly filledIn?: Readonly<Record<string, object | ((request: MockRequest) => object)>>;
  /**
   * What provider functions answer, by token. One that is not named here gives its arguments back.
   */
  readonly calls?: Readonly<Record<string, (inputs: Record<string, any>) => object>>;
  /** Simulates a preview: outputs that the cloud fills in stay unknown. */
  readonly preview?: boolean;
}

interface MockRequest {
  readonly type: string;
  readonly name: string;
  readonly inputs: Record<string, any>;
}

/** What Azure fills in by itself, and the program goes on to read. */
const filledIn: Record<string, (request: MockRequest) => object> = {
  "azure-native:network:PublicIPAddress": () => ({ ipAddress: "20.0.0.4" }),
  "azure-native:resources:ResourceGroup": ({ name, inputs }) => ({
    name: inputs["resourceGroupName"] ?? name,
  }),
};

/** The SDK's types leave it out. */
const store = (): { callbacks: unknown } => require("@pulumi/pulumi/runtime/state").getStore();

// The SDK keeps a stack of each promise and of each resource, each of which jest looks up in the sources:
// half of the time of a program's test.
require("@pulumi/pulumi/runtime/debuggable").debuggablePromise = <T>(promise: Promise<T>) =>
  promise;
Object.assign(pulumi.Resource, { callsites: () => [] });

/** What the API's balancer has of a network. */
export const networkIds = {
  balancerSubnetId: pulumi.output("/ids/internal-balancers"),
  virtualNetworkId: pulumi.output("/ids/vnet"),
};

/** The one whose resources may still be on their way when the next test begins. */
let previous: Recorder | undefined;

/** Stands in for the engine and writes down what a program asks of it. */
export class Recorder {
  private readonly requests: Omit<Recorded, "opts" | "resource">[] = [];
  private readonly watched = new Map<
    string,
    { resource: pulumi.Resource; opts: pulumi.ResourceOptions }
  >();

  /** Call before constructing anything: there is one mock engine per process. */
  static async start(options: RecorderOptions = {}): Promise<Recorder> {
    // What registers late would meet the new engine, which has never heard of its parents.
    await previous?.all();
    await settled();
    const recorder = new Recorder();
    previous = recorder;
    await pulumi.runtime.setMocks(
      {
        newResource: (request) => {
          const { type, name, inputs, id } = request;
          recorder.requests.push({ type, name, inputs });
          const own = options.filledIn?.[type];
          const extra: { id?: string } | undefined = typeof own === "function" ? own(request) : own;
          return {
            id: id || extra?.id || `/ids/${name}`,
            state: { name, ...inputs, ...filledIn[type]?.(request), ...extra },
          };
        },
        call: ({ token, inputs }) => options.calls?.[token]?.(inputs) ?? inputs,
      },
      "zoned",
      "test",
      options.preview ?? false,
      "organization",
    );
    // The mock engine would never answer to a hook, nor call it.
    const answer = async () => undefined;
    store().callbacks = { registerErrorHook: answer, awaitStackRegistrations: answer };
    return recorder;
  }

  /**
   * Give this to the component under test; the mock engine itself never hears of resource options.
   */
  readonly watch: pulumi.ResourceTransformation = ({ resource, type, name, opts }) => {
    this.watched.set(keyOf(type, name), { resource, opts });
    return undefined;
  };

  /**
   * Everything asked for, once all of it has been. Read earlier, a late resource looks like a
   * missing one.
   *
   * @throws Error where two are called alike, which the engine refuses
   */
  async all(): Promise<readonly Recorded[]> {
    let seen = -1;
    // A resource made inside an `apply` turns up while others are waited for.
    while (seen !== this.watched.size) {
      seen = this.watched.size;
      await Promise.all([...this.watched.values()].map(({ resource }) => valueOf(resource.urn)));
    }
    const keys = this.requests.map(({ type, name }) => keyOf(type, name));
    const twice = keys.filter((key, index) => keys.indexOf(key) < index);
    if (twice.length > 0) throw new Error(`made more than once: ${twice.join(", ")}`);
    return this.requests.map((request) => {
      const watched = this.watched.get(keyOf(request.type, request.name));
      return { ...request, opts: watched?.opts ?? {}, resource: watched?.resource };
    });
  }

  async of(type: string): Promise<readonly Recorded[]> {
    return (await this.all()).filter((request) => request.type === type);
  }

  async only(type: string): Promise<Recorded> {
    const [found, ...more] = await this.of(type);
    if (found === undefined || more.length > 0) {
      throw new Error(`expected exactly one ${type}, got ${found ? more.length + 1 : 0}`);
    }
    return found;
  }

  /** Everything asked of the Kubernetes API. */
  async objects(): Promise<readonly Recorded[]> {
    return (await this.all()).filter(
      ({ type }) => type.startsWith("kubernetes:") && type !== "pulumi:providers:kubernetes",
    );
  }

  /** The one Kubernetes object of that kind and name; what merely patches it does not count. */
  async object(kind: string, objectName: string): Promise<Recorded> {
    const objects = await this.objects();
    const found = objects.filter(
      ({ type, inputs }) =>
        inputs.kind === kind && inputs.metadata?.name === objectName && !type.endsWith("Patch"),
    );
    if (found.length !== 1) {
      const known = objects.map(({ inputs }) => `${inputs.kind} ${inputs.metadata?.name}`);
      throw new Error(
        `expected exactly one ${kind} ${objectName}, got ${found.length} among ${known.join(", ") || "nothing"}`,
      );
    }
    return found[0]!;
  }
}

/** Lets everything that waits for nothing but its turn have it. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

const keyOf = (type: string, name: string) => `${type} ${name}`;

/** What an Output comes to. In a preview that may be never: use it on what is known there. */
export const valueOf = <T>(output: pulumi.Output<T>): Promise<T> =>
  new Promise((resolve) => output.apply(resolve));

/** An input without its mark, if it was marked as a secret. */
export const revealed = (input: any): any =>
  input?.[pulumi.runtime.specialSigKey] === pulumi.runtime.specialSecretSig ? input.value : input;

/** Everything a resource waits for, whichever of the accepted shapes `dependsOn` was given in. */
export async function dependenciesOf({ opts }: Recorded): Promise<readonly pulumi.Resource[]> {
  const given = await valueOf(pulumi.output(opts.dependsOn ?? []) as pulumi.Output<unknown>);
  return ([] as unknown[]).concat(given).filter(pulumi.Resource.isInstance);
}

type Operation = (...args: any[]) => any;

/** What the engine's plugin makes of a dynamic resource's own text. */
export function providerOf({ inputs }: Pick<Recorded, "inputs">): Record<string, Operation> {
  const module = { exports: {} as { handler: () => Record<string, Operation> } };
  const cwd = process.cwd();
  process.chdir(checkout);
  try {
    new Function("exports", "require", inputs["__provider"])(module.exports, require);
    return module.exports.handler();
  } finally {
    process.chdir(cwd);
  }
}
