module.exports = {
  testMatch: ["<rootDir>/tests/**/*.test.ts", "<rootDir>/local-azure/**/*.test.ts"],
  transform: { "\\.ts$": "<rootDir>/tests/transpile.cjs" },
  modulePathIgnorePatterns: ["<rootDir>/.local-azure/"],
};
