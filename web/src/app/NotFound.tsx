import { useLocation } from "react-router";
import styles from "@/app/Layout.module.css";
import { ButtonLink } from "@/ui/Button";
import { usePageTitle } from "@/ui/pageTitle";

/** The page for an unknown address. */
export function NotFound() {
  const { pathname } = useLocation();
  usePageTitle("Not found");
  return (
    <div className={styles.message}>
      <h1>There is no such page</h1>
      <p>
        Nothing is at <code>{pathname}</code>.
      </p>
      <ButtonLink to="/" kind="primary">
        New goal
      </ButtonLink>
    </div>
  );
}
