module.exports = {
  testMatch: ["tests", "local-azure", "kube-proxy"].map((folder) => `<rootDir>/${folder}/**/*.test.ts`),
  transform: { "\\.ts$": "<rootDir>/tests/transpile.cjs" },
  modulePathIgnorePatterns: ["<rootDir>/.local-azure/"],
  // No claim is about time; a busy machine needs longer than the five seconds that are usual.
  testTimeout: 120_000,
};
