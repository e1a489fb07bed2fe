import { podProblem } from "../../../../plugins/kubernetes/await/diagnosis";

const pod = (status: object, nodeName = "n1") => ({
  metadata: { name: "web-1" },
  spec: { nodeName },
  status: { phase: "Running", ...status },
});

it.each([
  {
    what: "a ready pod",
    object: pod({ conditions: [{ type: "Ready", status: "True" }] }),
    says: undefined,
  },
  { what: "a pod that has done its work", object: pod({ phase: "Succeeded" }), says: undefined },
  {
    what: "a pod that fits nowhere",
    object: pod(
      {
        phase: "Pending",
        conditions: [
          {
            type: "PodScheduled",
            status: "False",
            reason: "Unschedulable",
            message: "0/3 nodes are available",
          },
        ],
      },
      "",
    ),
    says: "pod web-1: Pending; Unschedulable: 0/3 nodes are available",
  },
  {
    what: "a container without its image",
    object: pod({
      containerStatuses: [
        {
          name: "c",
          ready: false,
          state: { waiting: { reason: "ErrImagePull", message: "not found" } },
        },
      ],
    }),
    says: "pod web-1 on node n1: Running; container c: ErrImagePull: not found",
  },
  {
    what: "a container that crashes after its init container ended",
    object: pod({
      initContainerStatuses: [{ name: "i", ready: false, state: { terminated: { exitCode: 0 } } }],
      containerStatuses: [
        {
          name: "c",
          ready: false,
          state: { waiting: { reason: "CrashLoopBackOff" } },
          lastState: { terminated: { exitCode: 3 } },
        },
      ],
    }),
    says: "pod web-1 on node n1: Running; container c: CrashLoopBackOff, last exit code 3",
  },
])("says of $what: $says", ({ object, says }) => {
  expect(podProblem(object)).toBe(says);
});
