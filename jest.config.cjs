module.exports = {
  testMatch: ["<rootDir>/{tests,tools}/**/*.test.ts"],
  transform: { "\\.ts$": "<rootDir>/typescript.cjs" },
  testSequencer: "<rootDir>/tests/longest-first.cjs",
  testEnvironment: "<rootDir>/tests/environment.cjs",
  modulePathIgnorePatterns: ["<rootDir>/.local-azure/"],
  // Jest would leave a core to others; but much of a test's time goes by in the processes that it
  // awaits.
  maxWorkers: "100%",
};
