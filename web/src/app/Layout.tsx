import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { Outlet, useLocation, useNavigate } from "react-router";
import { useSession } from "@/api/session";
import styles from "@/app/Layout.module.css";
import { NAVIGATION } from "@/app/navigation";
import { SEARCH_FIELD_ID } from "@/app/SearchBox";
import { ServiceNotice } from "@/app/ServiceNotice";
import { BottomBar, TopBar } from "@/app/TopBar";
import { LiveRegion } from "@/ui/announcer";
import { usePreferences } from "@/ui/preferences";
import { EVERYWHERE, useShortcuts } from "@/ui/shortcuts";
import { useToasts } from "@/ui/toasts";

const BrowserNotices = lazy(() =>
  import("@/app/BrowserNotices").then((module) => ({ default: module.BrowserNotices })),
);
const LoginPage = lazy(() =>
  import("@/app/LoginPage").then((module) => ({ default: module.LoginPage })),
);
const ShortcutHelp = lazy(() =>
  import("@/app/ShortcutHelp").then((module) => ({ default: module.ShortcutHelp })),
);
const Toaster = lazy(() => import("@/ui/Toaster").then((module) => ({ default: module.Toaster })));

/** What every page has: the bar, the keys, and the page itself. */
export function Layout() {
  const [isHelpOpen, setHelpOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const hasToasts = useToasts(({ shown }) => shown.length > 0);
  const hasNotices = usePreferences(({ notices }) => notices);
  const navigate = useNavigate();
  const needsLogin = useSession((session) => session.needsLogin);
  const openHelp = useCallback(() => setHelpOpen(true), []);
  useGlobalShortcuts(openHelp);
  useFocusOnNavigation(main);
  return (
    <div className={styles.app}>
      <button type="button" className={styles.skip} onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <TopBar isLocked={needsLogin} onHelp={openHelp} />
      <ServiceNotice />
      <main id="main" ref={main} className={styles.main} tabIndex={-1}>
        <Suspense>{needsLogin ? <LoginPage /> : <Outlet />}</Suspense>
      </main>
      {!needsLogin && <BottomBar />}
      {/* Each is loaded when there is something to show. */}
      <Suspense>
        {isHelpOpen && <ShortcutHelp open onClose={() => setHelpOpen(false)} />}
        {hasToasts && <Toaster />}
        {hasNotices && !needsLogin && <BrowserNotices open={navigate} />}
      </Suspense>
      <LiveRegion />
    </div>
  );
}

function useGlobalShortcuts(openHelp: () => void): void {
  const navigate = useNavigate();
  useShortcuts(EVERYWHERE, [
    ...NAVIGATION.map(({ key, label, to }) => ({
      keys: `g ${key}`,
      does: `Go to ${label.toLowerCase()}`,
      run: () => navigate(to),
    })),
    { keys: "/", does: "Search", run: () => document.getElementById(SEARCH_FIELD_ID)?.focus() },
    { keys: "?", does: "Show the keys", run: openHelp },
  ]);
}

/** Moves the focus from a link to the page it led to; a page or a person may have moved it already. */
function useFocusOnNavigation(main: React.RefObject<HTMLElement | null>): void {
  const { pathname } = useLocation();
  const last = useRef(pathname);
  useEffect(() => {
    if (last.current === pathname) return;
    last.current = pathname;
    const focused = document.activeElement;
    if (focused === document.body || focused instanceof HTMLAnchorElement) main.current?.focus();
  }, [pathname, main]);
}
