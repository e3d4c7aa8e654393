import type { ProviderDetails } from "@/api/types";

/** Who writes the plan and runs the steps that the plan leaves open; nulls mean the default. */
export interface ModelChoice {
  provider: string | null;
  model: string | null;
}

/** Returns the provider of a choice: the named one, else the first that is or will be available. */
export function chosenProvider(
  choice: ModelChoice,
  providers: readonly ProviderDetails[],
): ProviderDetails | undefined {
  if (choice.provider) return providers.find(({ name }) => name === choice.provider);
  return providers.find(({ available }) => available) ?? providers.find(({ download }) => download);
}

/** Returns the model of a choice, as it is shown. */
export function chosenModel(choice: ModelChoice, provider: ProviderDetails | undefined): string {
  return choice.model ?? provider?.default_model ?? provider?.models[0] ?? provider?.name ?? "";
}
