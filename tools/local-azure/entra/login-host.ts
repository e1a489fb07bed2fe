/** Entra's name. */
export const loginHost = "login.microsoftonline.com";
