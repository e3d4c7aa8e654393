import { Link } from "react-router";
import { ErrorNote } from "@/screens/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import styles from "./EditorScreen.module.css";

type OpeningProps = {
  /** "Plan". */
  what: string;
  /** Why it cannot be opened, if so. */
  error: Error | null;
  /** The way on from an error. */
  back: { to: string; words: string };
};

/** What an editor shows until it has what it edits. */
export function Opening({ what, error, back }: OpeningProps) {
  if (!error) {
    return (
      <div className={styles.message}>
        <Skeleton label={`Loading the ${what.toLowerCase()}`} lines={6} />
      </div>
    );
  }
  return (
    <div className={styles.message}>
      <h1>{what}</h1>
      <ErrorNote error={error} />
      <Link to={back.to}>{back.words}</Link>
    </div>
  );
}
