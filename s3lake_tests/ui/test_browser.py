"""What people do in Dagster's UI, clicked in a real browser, and what they see."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from s3lake_tests.ui.conftest import Picture, opened
from s3lake_tests.ui.site import Site

pytestmark = pytest.mark.timeout(3600)

_RUN_MS = 900_000
"""For what a run, or a daemon, has to do first."""
_ORDERS = "/assets/s3/events/orders"


def materialize(page: Page, assets: str, hours: str, count: str) -> None:
    """Materialize hours of an asset, or of a group of assets, and open the page of their run or backfill."""
    page.goto(assets)
    page.get_by_role("button", name=re.compile("Materialize( all)?…")).first.click()
    dialog = page.get_by_role("dialog")
    selection = dialog.get_by_placeholder("No matching partitions")
    selection.fill(hours)
    selection.press("Enter")
    expect(dialog.get_by_text(count, exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Launch").last.click()
    page.get_by_text("View", exact=True).first.click()
    page.mouse.move(0, 0)  # what it hovers over stays


@pytest.fixture(scope="module")
def backfill(browser: Browser, site: Site) -> str:
    """Three hours of orders, landed by a backfill that was clicked: the path of its page."""
    with opened(browser, site) as page:
        first, _, last = site.hours
        materialize(page, _ORDERS, f"[{first}...{last}]", "3 partitions")
        expect(page.get_by_text("100% completed")).to_be_visible(timeout=_RUN_MS)
        expect(page.get_by_text("Succeeded", exact=True)).to_have_count(2)  # a column, and the status
        return page.url.removeprefix(site.url)


@pytest.mark.slow("another page of the UI")
def test_a_backfill_of_three_hours_lands_them(page: Page, site: Site, backfill: str, picture: Picture) -> None:
    page.goto(backfill)
    expect(page.get_by_text("100% completed")).to_be_visible()
    expect(page.get_by_text("Succeeded", exact=True)).to_have_count(2)
    expect(page.get_by_text(f"{site.hours[0]}...{site.hours[2]}")).to_be_visible()
    picture("backfill", 330)


@pytest.mark.slow("another page of the UI")
def test_a_backfill_lands_tables_of_pandas_and_polars(page: Page, site: Site, picture: Picture) -> None:
    first, _, last = site.hours
    materialize(page, "/locations/shop/asset-groups/tables", f"[{first}...{last}]", "3 partitions")
    expect(page.get_by_text("100% completed")).to_have_count(2, timeout=_RUN_MS)
    expect(page.get_by_text("Succeeded", exact=True)).to_have_count(2)  # a column, and the status
    for asset in ("visits", "busy_pages"):
        expect(page.get_by_text(asset, exact=True).first).to_be_visible()
    picture("tables", 400)


@pytest.mark.slow("another page of the UI")
def test_its_run_reports_hour_by_hour_what_it_does(page: Page, site: Site, backfill: str, picture: Picture) -> None:
    page.goto(f"{backfill}?tab=runs")
    page.locator('a[href*="/runs/"]', has_text="View").first.click()
    page.get_by_placeholder("Filter…").fill("orders, hour")
    for number, hour in enumerate(site.hours):
        expect(page.get_by_text(f"orders, hour {hour}: planned")).to_be_visible()
        expect(page.get_by_text(f"orders, hour {hour}: commit 1 of 1")).to_be_visible()
        share = f"{number + 1} of 3 hours, {(number + 1) * 100 // 3}%"
        expect(page.get_by_text(f"orders, hour {hour}: done").filter(has_text=share)).to_be_visible()
    picture("run", 860)


@pytest.mark.usefixtures("backfill")
def test_an_hour_shows_what_was_landed_of_it(page: Page, site: Site, picture: Picture) -> None:
    page.goto(f"{_ORDERS}?view=partitions&partition={site.hours[1]}")
    shown = page.locator("tr")
    for name in ("dagster/row_count", "dagster/size_bytes", "files", "freshness_p95_s"):
        expect(shown.filter(has_text=name).locator("td").nth(1)).to_have_text(re.compile(r"^[1-9]"))
    expect(shown.filter(has_text="orders-3").last).to_be_visible()
    expect(
        page.get_by_text(f"s3://lake/raw/orders/date={site.hours[1][:10]}/hour={site.hours[1][11:]}/")
    ).to_be_visible()
    expect(page.locator('a[href*="prefix=raw/orders/"]').first).to_be_visible()
    picture("hour", 1560)


@pytest.mark.slow("another page of the UI")
@pytest.mark.usefixtures("backfill")
def test_numbers_that_change_from_hour_to_hour_are_plotted_and_nothing_else(page: Page, picture: Picture) -> None:
    page.goto(_ORDERS)
    page.get_by_text("Plots", exact=True).click()
    plots = ("dagster/row_count", "dagster/size_bytes", "files", "dead_letters", "late", "freshness_p95_s")
    for name in plots:
        expect(page.get_by_text(name, exact=True)).to_be_visible()
    expect(page.locator("canvas")).to_have_count(len(plots) + 2)
    page.get_by_text("Metadata", exact=True).evaluate("shown => shown.scrollIntoView()")
    picture("plots", 1140)


@pytest.mark.slow("another page of the UI")
@pytest.mark.usefixtures("backfill")
def test_a_sealed_hour_can_be_seen(page: Page, site: Site, picture: Picture) -> None:
    page.goto(f"{_ORDERS}_sealed?view=partitions&partition={site.hours[1]}")
    expect(page.get_by_text("sealed_after_s")).to_be_visible()
    picture("sealed", 1100)


@pytest.mark.slow("another page of the UI")
@pytest.mark.usefixtures("backfill")
def test_the_lineage_leads_from_the_topic_into_a_second_project(page: Page, picture: Picture) -> None:
    page.goto("/assets/s3/events/orders_sealed?view=lineage&lineageScope=neighbors&lineageDepth=2")
    for node in ("orders", "orders_sealed", "orders_by_type", "revenue"):
        expect(page.get_by_text(node, exact=True).last).to_be_visible()
    sealed = page.locator('a[href$="/orders_sealed?view=partitions"]')
    expect(sealed.filter(has_text="filled")).to_have_text(re.compile("^(100|75)% "))  # 75 where an hour ended meanwhile
    picture("lineage", 860)


@pytest.mark.slow("another page of the UI")
@pytest.mark.usefixtures("backfill")
def test_the_catalogue_has_both_projects(page: Page, picture: Picture) -> None:
    page.set_viewport_size({"width": 1440, "height": 2400})
    page.goto("/assets")
    for location, asset in (("s3lake", "s3 / events / orders"), ("shop", "shop / revenue")):
        row = (
            page.locator("div, tr")
            .filter(has=page.get_by_text(asset, exact=True))
            .filter(has=page.get_by_text(location, exact=True))
        )
        expect(row.last).to_be_visible()
    expect(page.get_by_text(re.compile("^[34] partitions$")).first).to_be_visible()  # 4 where an hour ended meanwhile
    picture("catalog", 900)


@pytest.mark.slow("another page of the UI")
def test_a_run_that_failed_shows_the_reason_in_our_words(page: Page, site: Site, picture: Picture) -> None:
    materialize(page, "/assets/s3/strict/payments", site.hours[0], "1 partition")
    expect(page.get_by_text("Failure", exact=True).first).to_be_visible(timeout=_RUN_MS)
    page.get_by_placeholder("Filter…").fill("step:s3__strict__payments")
    expect(page.get_by_text("Set errors.tolerance").first).to_be_visible()
    expect(page.get_by_text("The above exception")).to_have_count(0)
    expect(page.get_by_text("Launched run")).to_have_count(0)
    picture("failed", 900)


@pytest.mark.slow("another page of the UI")
def test_an_hour_with_a_broken_record_shows_why_it_is_a_dead_letter(page: Page, site: Site, picture: Picture) -> None:
    materialize(page, "/assets/s3/lenient/payments", site.hours[0], "1 partition")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=_RUN_MS)
    page.goto(f"/assets/s3/lenient/payments_dead_letters?view=partitions&partition={site.hours[0]}")
    shown = page.locator("tr")
    expect(shown.filter(has_text="dead_letters").locator("td").nth(1)).to_have_text("1")
    for text in ("Input data was truncated", "payments-0", "to_replay"):
        expect(shown.filter(has_text=text).last).to_be_visible()
    picture("dead_letters", 1060)


@pytest.mark.slow("another page of the UI")
def test_an_hour_that_changed_columns_shows_the_difference(page: Page, site: Site, picture: Picture) -> None:
    first, second, _ = site.hours
    materialize(page, "/assets/s3/typed/payments", f"[{first}...{second}]", "2 partitions")
    expect(page.get_by_text("100% completed")).to_be_visible(timeout=_RUN_MS)
    page.goto(f"/assets/s3/typed/payments?view=partitions&partition={second}")
    changes = page.locator("tr").filter(has_text="schema_changes").last
    for text in ("currency", "payer", "struct<country: string>"):
        expect(changes.get_by_text(text, exact=True).first).to_be_visible()
    picture("schema", 1060)


@pytest.mark.slow("another page of the UI")
def test_a_sensor_that_is_switched_on_asks_for_a_run(page: Page, picture: Picture) -> None:
    page.goto("/locations/s3lake/sensors/kafka_clicks")
    page.locator("label:has(input[type=checkbox])").click()
    expect(page.get_by_text("1 run requested").first).to_be_visible(timeout=_RUN_MS)
    expect(page.get_by_text("Sensor has never run")).to_have_count(0)
    expect(page.locator("input[type=checkbox]")).to_be_checked()
    picture("sensor", 760)
