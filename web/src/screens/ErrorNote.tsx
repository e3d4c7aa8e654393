import { errorText } from "@/api/errorText";
import { Note } from "@/ui/Note";

/** What went wrong in the API's own words, and the way out; read out at once. */
export function ErrorNote({ error }: { error: Error }) {
  return (
    <Note kind="error" alert>
      {errorText(error)}
    </Note>
  );
}
