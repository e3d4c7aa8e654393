import { Link, useLocation } from "react-router";
import { NAVIGATION } from "@/app/navigation";
import { SearchBox } from "@/app/SearchBox";
import { ServiceConnection } from "@/app/ServiceConnection";
import { ThemeMenu } from "@/app/ThemeMenu";
import styles from "@/app/TopBar.module.css";
import { IconButton } from "@/ui/IconButton";
import { Icon, Logo } from "@/ui/icons";
import { Tooltip } from "@/ui/Tooltip";

function Links({ className }: { className: string | undefined }) {
  const { pathname } = useLocation();
  const isBelow = (path: string) => pathname === path || pathname.startsWith(`${path}/`);
  return (
    <nav className={className} aria-label="Main">
      {NAVIGATION.map(({ to, label, icon, holds = [], Badge }) => (
        <Link key={to} to={to} aria-current={[to, ...holds].some(isBelow) ? "page" : undefined}>
          <Icon name={icon} />
          <span>{label}</span>
          {Badge && <Badge />}
        </Link>
      ))}
    </nav>
  );
}

interface TopBarProps {
  /** Without a login there is nothing to lead to and nothing to search. */
  isLocked: boolean;
  onHelp: () => void;
}

/** The bar on top of every page; on a phone its links are at the bottom. */
export function TopBar({ isLocked, onHelp }: TopBarProps) {
  return (
    <header className={styles.bar}>
      <Link to="/" className={styles.brand}>
        <Logo />
        planwave
      </Link>
      {isLocked ? (
        <span className={styles.space} />
      ) : (
        <>
          <Links className={styles.links} />
          <SearchBox />
        </>
      )}
      <ServiceConnection />
      {!isLocked && (
        <Tooltip text="Settings">
          <Link to="/settings" className={styles.settings} aria-label="Settings">
            <Icon name="settings" />
          </Link>
        </Tooltip>
      )}
      <ThemeMenu />
      <span className={styles.help}>
        <IconButton icon="help" label="Keyboard help" keys="?" onClick={onHelp} />
      </span>
    </header>
  );
}

/** The links of the top bar, at the bottom of a phone. */
export function BottomBar() {
  return <Links className={styles.bottom} />;
}
