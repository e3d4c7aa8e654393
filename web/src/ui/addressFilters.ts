/** Returns an address's parameters with some filters changed: one at its usual value is left out.
 *
 * @param names What each filter is called in the address; all other parameters stay. */
export function withChangedFilters<Filters extends Record<keyof Filters, string>>(
  params: URLSearchParams,
  changed: Partial<Filters>,
  usual: Filters,
  names: Readonly<Record<keyof Filters, string>>,
): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const filter of Object.keys(names) as (keyof Filters)[]) {
    const value = changed[filter];
    if (value === undefined) continue;
    if (value === usual[filter]) next.delete(names[filter]);
    else next.set(names[filter], value);
  }
  return next;
}
