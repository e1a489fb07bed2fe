const eslint = require("@eslint/js");
const tseslint = require("typescript-eslint");

const globalsOfNode = [
  ...["require", "module", "__dirname", "__filename", "process", "console", "Buffer"],
  ...["setTimeout", "clearTimeout", "setInterval", "clearInterval"],
  ...["fetch", "AbortSignal", "URL"],
];

module.exports = tseslint.config(
  { ignores: ["node_modules/", ".local-azure/", ".recover/"] },
  eslint.configs.recommended,
  tseslint.configs.recommended,
  {
    rules: {
      // A require in a function loads a large module only where it is used.
      "@typescript-eslint/no-require-imports": "off",
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_", caughtErrorsIgnorePattern: "^_" },
      ],
    },
  },
  {
    files: ["**/*.ts"],
    // All files are in one project; the project service, made for editors, takes a quarter longer.
    languageOptions: { parserOptions: { project: "tsconfig.json", tsconfigRootDir: __dirname } },
    rules: {
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/await-thenable": "error",
    },
  },
  {
    files: ["tests/**/*.ts", "tools/*/tests/**/*.ts", "tools/lab/**/*.ts"],
    rules: { "@typescript-eslint/no-explicit-any": "off" },
  },
  {
    files: ["**/*.cjs"],
    languageOptions: {
      globals: Object.fromEntries(globalsOfNode.map((name) => [name, "readonly"])),
    },
  },
);
