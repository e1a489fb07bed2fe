module.exports = {
  testMatch: ["<rootDir>/tests/**/*.test.ts", "<rootDir>/local-azure/**/*.test.ts"],
  transform: { "\\.ts$": "<rootDir>/tests/transpile.cjs" },
  modulePathIgnorePatterns: ["<rootDir>/.local-azure/"],
  // No claim is about time; a busy machine needs longer than the five seconds that are usual.
  testTimeout: 60_000,
};
