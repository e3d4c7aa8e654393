import type { SuggestionResponse } from "@/api/types";
import { Button } from "@/ui/Button";

export type OnCorrect = (suggestion: SuggestionResponse) => void;

type SuggestionButtonProps = {
  /** The one way to correct what was found, if there is one. */
  suggestion: SuggestionResponse | null | undefined;
  onCorrect: OnCorrect;
};

/** Corrects a problem as the check suggests. */
export function SuggestionButton({ suggestion, onCorrect }: SuggestionButtonProps) {
  if (!suggestion) return null;
  return (
    <Button small onClick={() => onCorrect(suggestion)}>
      {suggestion.label}
    </Button>
  );
}
