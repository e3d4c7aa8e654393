/** The two lists of requests; the address has the one that is shown. */
export type Tab = "waiting" | "answered";

/** The parameter of the address. */
export const TAB = "tab";
