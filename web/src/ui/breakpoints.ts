/** The two widths at which screens change their layout; a style sheet writes `@media (--phone)`.
 *
 * What depends on the width of one part, not on that of the screen, is a container query there. */
export const BREAKPOINTS = {
  /** The page scrolls as a whole, and what is open covers it. */
  phone: "(max-width: 720px)",
  /** No room for a panel beside the rest: half a screen, a tablet. */
  narrow: "(max-width: 1100px)",
} as const;

export type Breakpoint = keyof typeof BREAKPOINTS;

/** Returns the parameters of a media rule with widths in place of names.
 *
 * @throws {Error} There is no such name. */
export function withWidths(params: string): string {
  return params.replace(/\(--([\w-]+)\)/g, (_, name: string) => {
    if (name in BREAKPOINTS) return BREAKPOINTS[name as Breakpoint];
    throw new Error(`--${name} is no breakpoint: ${Object.keys(BREAKPOINTS).join(", ")} are`);
  });
}
