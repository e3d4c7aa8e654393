import type { ProviderDetails } from "@/api/types";

/** What to do so that a provider can be used, as a sentence; a command is set as one. */
export function WayOut({ provider }: { provider: ProviderDetails }) {
  const way = provider.how_to_enable;
  if (way === "") return null;
  if (way.startsWith("planwave ")) {
    return (
      <>
        Run <code>{way}</code>.
      </>
    );
  }
  return <>{way.charAt(0).toUpperCase() + way.slice(1)}.</>;
}
