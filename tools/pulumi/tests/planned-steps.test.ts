import { plannedSteps } from "../planned-steps";

const preview = `Previewing update (prod):

 -- azure-native:compute:VirtualMachine zoned-prod-cp-1-vm delete original 
 +- azure-native:compute:VirtualMachine zoned-prod-cp-1-vm replace [diff: ~storageProfile,tags]
 ++ azure-native:compute:VirtualMachine zoned-prod-cp-1-vm create replacement [diff: ~tags]
 ~  kubernetes:apps/v1:DaemonSetPatch roll-out-kube-proxy update [diff: ~metadata]
 +  zoned:index:Machine zoned-prod-cp-2 create
 +  pulumi:providers:kubernetes kubernetes-2 create 
\u001b[1m -  \u001b[0mkubernetes:core/v1:Secret token delete[retain] 
    pulumi:pulumi:Stack zoned-prod  
 ~  azure-native:network:NetworkInterface nic refresh
Resources:
    ~ 1 to update
`;

it("reads the steps that a preview announced, and none of the operation", () => {
  const update = "Updating (prod):\n\n +  kubernetes:core/v1:Secret other create\n";

  expect(plannedSteps(`${preview}\n\n${update}`)).toEqual([
    "delete-replaced zoned-prod-cp-1-vm",
    "replace zoned-prod-cp-1-vm",
    "create-replacement zoned-prod-cp-1-vm",
    "update roll-out-kube-proxy",
    "delete token",
    "refresh nic",
  ]);
});

it("knows of no plan where there was only a preview, or none", () => {
  expect(plannedSteps(preview)).toBeUndefined();
  expect(plannedSteps("Updating (prod):\n\n")).toBeUndefined();
});

it("takes a preview that announces nothing for one", () => {
  expect(plannedSteps("Previewing destroy (dev):\n\nDestroying (dev):\n")).toEqual([]);
});
