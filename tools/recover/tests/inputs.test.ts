import { inputsOf } from "../inputs";

const secret = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270" };

it.each([
  {
    what: "keeps what Azure never shows",
    sent: { osProfile: { computerName: "a", customData: "x" }, protectedSettings: secret },
    shown: { osProfile: { computerName: "a" } },
    recorded: { osProfile: { computerName: "a", customData: "x" }, protectedSettings: secret },
  },
  {
    what: "takes no default of Azure for a wish",
    sent: { sku: { name: "Standard" } },
    shown: { sku: { name: "Standard", tier: "Regional" }, idleTimeoutInMinutes: 4 },
    recorded: { sku: { name: "Standard" } },
  },
  {
    what: "believes Azure where it shows something else than was sent",
    sent: { size: "B2s", zones: ["1"], pools: [{ id: "/a" }, { id: "/b" }] },
    shown: { size: "B4s", zones: ["1", "2"], pools: [{ id: "/a", etag: "x" }, { id: "/c" }] },
    recorded: { size: "B4s", zones: ["1", "2"], pools: [{ id: "/a" }, { id: "/c" }] },
  },
  {
    what: "keeps a list that Azure shows as a map",
    sent: { identities: ["/a"] },
    shown: { identities: { "/a": {} } },
    recorded: { identities: ["/a"] },
  },
  {
    what: "never takes a secret out of its cipher",
    sent: { tags: secret },
    shown: { tags: "in clear" },
    recorded: { tags: secret },
  },
])("$what", ({ sent, shown, recorded }) => {
  expect(inputsOf(sent, shown)).toEqual(recorded);
});
