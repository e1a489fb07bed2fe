import type { Cases } from "./case";

const window = { days: ["tue", "thu"], from: "02:00", to: "05:00" };

export const rebootCases: Cases = {
  refused: [
    ["reboots at any time", { reboots: "always" }, "expected days, from and to"],
    [
      "a window without days",
      { reboots: { from: "02:00", to: "05:00" } },
      "a day beside from and to",
    ],
    [
      "a day that is none",
      { reboots: { ...window, days: ["tue", "Thursday"] } },
      'reboots.days[1] is "Thursday", expected one of mon, tue, wed, thu, fri, sat, sun',
    ],
    [
      "a window that never begins",
      { reboots: { days: ["tue"], to: "05:00" } },
      "reboots.from is not set, expected a time of day in UTC",
    ],
    ["a time that is none", { reboots: { ...window, to: "25:00" } }, "a time of day in UTC"],
    [
      "a window over midnight",
      { reboots: { ...window, from: "23:00", to: "02:00" } },
      "at least an hour before 02:00 on the same day",
    ],
    [
      "a window too short for a machine",
      { reboots: { ...window, to: "02:30" } },
      "reboots.from 01:30",
    ],
    ["a name that nobody reads", { reboots: { ...window, zone: "UTC" } }, "one of days, from, to"],
  ],
  accepted: [["reboots in two nights of the week", { reboots: window }]],
};
